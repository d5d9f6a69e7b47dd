"""A job from its configuration to its release, and loading one."""
