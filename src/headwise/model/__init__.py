"""The paper's model, on tensors alone: ids in, logits out; it never sees a string."""
