"""The local torch engine: tokenizer, renderer, model, batched sampling with a KV cache. Imports torch."""
