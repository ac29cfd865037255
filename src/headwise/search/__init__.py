"""Ids from a step function: `step(last_ids, state) -> (log_probs, state)`; search knows no model.

It works on tensors, so that the best of a vocabulary are found on the device where the model runs; the core, which has
CTranslate2 to search for it, does not import this package.
"""
