"""A classifier trained in rounds on owners' rows: logistic regression or a multilayer perceptron.

Client half: `tasks`, on what `features` makes of a row. Server half: `server` and the class,
`federated`.
"""
