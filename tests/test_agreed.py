"""Records that parties agree on: what was called otherwise once is still understood."""

from __future__ import annotations

import pytest

from fedsynth.agreed import suggestion
from fedsynth.errors import ConfigError
from fedsynth.methods.gan.settings import FedCTGANSettings, FedGANSettings
from fedsynth.papers.fusion_gan.settings import FusionGANSettings


@pytest.mark.parametrize("kind", [FedGANSettings, FedCTGANSettings, FusionGANSettings])
def test_settings_of_earlier_files_are_read_under_their_present_names(kind):
    for before, now in kind.renamed.items():
        assert kind(**{before: 2.0}) == kind(**{now: 2.0})
        assert before not in kind.model_fields


def test_an_old_name_beside_the_new_one_is_refused():
    with pytest.raises(ConfigError, match="`guidance` is now called `auxiliary_loss`"):
        FedGANSettings(guidance=1.0, auxiliary_loss=2.0)


def test_an_unknown_name_is_still_an_error_with_a_suggestion():
    with pytest.raises(ConfigError, match="did you mean 'auxiliary_loss'"):
        FedGANSettings(auxilary_loss=1.0)


def test_a_name_in_another_case_is_near():
    assert suggestion("AIM", ["aim", "mst"]) == "; did you mean 'aim'?"
    assert suggestion("AGE", ["Age", "sex"]) == "; did you mean 'Age'?"
