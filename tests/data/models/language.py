"""Small language models of KerasHub with real tokenizers, plain and fine-tuned."""

import keras
import keras_hub
import numpy as np

WORDS = [chr(code) for code in range(33, 127)] + ["Ġ"]
MERGES = ["t h", "th e", "Ġ the"]
SIZES = {"num_layers": 2, "hidden_dim": 16, "intermediate_dim": 32}
GROUPED = {**SIZES, "num_query_heads": 2, "num_key_value_heads": 1}
hub = keras_hub.models


def vocabulary(*specials):
    """Words of one letter, those of the merges, and special tokens, numbered."""
    words = [*WORDS, *("".join(one.split()) for one in MERGES), *specials]
    return {word: number for number, word in enumerate(words)}


def gpt2(**options):
    """A GPT-2 whose tokenizer knows the printable letters and `` the``."""
    keras.utils.set_random_seed(0)
    words = vocabulary("<|endoftext|>")
    tokenizer = hub.GPT2Tokenizer(vocabulary=words, merges=MERGES)
    sizes = {**SIZES, "intermediate_dim": 64, "num_heads": 2, "max_sequence_length": 32, **options}
    backbone = hub.GPT2Backbone(vocabulary_size=len(words), **sizes)
    preprocessor = hub.GPT2CausalLMPreprocessor(tokenizer, sequence_length=16)
    return hub.GPT2CausalLM(backbone=backbone, preprocessor=preprocessor)


def llama(**options):
    """A Llama 3 whose head is a table of its own, as those of 8B have."""
    keras.utils.set_random_seed(0)
    marks = ("begin_of_text", "end_of_text", "start_header_id", "end_header_id", "eot_id")
    words = vocabulary(*(f"<|{one}|>" for one in marks))
    tokenizer = hub.Llama3Tokenizer(vocabulary=words, merges=MERGES)
    backbone = hub.Llama3Backbone(vocabulary_size=len(words), **GROUPED, **options)
    preprocessor = hub.Llama3CausalLMPreprocessor(tokenizer, sequence_length=16)
    return hub.Llama3CausalLM(backbone=backbone, preprocessor=preprocessor)


def qwen():
    """A Qwen 2, of whose configuration KerasHub's converter leaves out what its reader needs."""
    keras.utils.set_random_seed(0)
    words = vocabulary("<|endoftext|>")
    tokenizer = hub.QwenTokenizer(vocabulary=words, merges=MERGES)
    backbone = hub.QwenBackbone(vocabulary_size=len(words), **GROUPED)
    preprocessor = hub.QwenCausalLMPreprocessor(tokenizer, sequence_length=16)
    return hub.QwenCausalLM(backbone=backbone, preprocessor=preprocessor)


def gemma(**options):
    """A Gemma, whose converter takes the kernels that LoRA froze."""
    import io

    import sentencepiece

    keras.utils.set_random_seed(0)
    proto = io.BytesIO()
    sentences = iter(["the quick brown fox jumped", "the earth is round", "a round fox"])
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences, model_writer=proto, vocab_size=40, model_type="BPE",
        pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>",
        bos_piece="<bos>", unk_piece="<unk>", minloglevel=2, add_dummy_prefix=False,
        user_defined_symbols=["<start_of_turn>", "<end_of_turn>"],
    )  # fmt: skip
    tokenizer = hub.GemmaTokenizer(proto=proto.getvalue())
    sizes = {**GROUPED, "head_dim": 8, "vocabulary_size": tokenizer.vocabulary_size(), **options}
    preprocessor = hub.GemmaCausalLMPreprocessor(tokenizer, sequence_length=16)
    return hub.GemmaCausalLM(backbone=hub.GemmaBackbone(**sizes), preprocessor=preprocessor)


def adapted(model):
    """The model with adapters of rank 2 that are far from nothing, as after a training."""
    model.backbone.enable_lora(2)
    draw = np.random.default_rng(0)
    for layer in model.backbone._flatten_layers():
        if getattr(layer, "lora_enabled", False):
            layer.lora_kernel_b.assign(draw.normal(size=layer.lora_kernel_b.shape, scale=0.3))
    return model


def quantized(model, mode):
    """The model with whole numbers for weights."""
    model.backbone.quantize(mode)
    return model


def adapted_gemma():
    """What a fine-tune by name leaves."""
    return adapted(gemma())


def without_tokenizer():
    """What a training on numbers of tokens has."""
    model = gpt2()
    model.preprocessor = None
    return model
