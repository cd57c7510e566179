"""Writes vocab.json and merges.txt, which Hugging Face tokenizers learns from the text below, ids.json, how it encodes
texts, and ../../../frontend/tokenizers/unicode_ranges.inc. tiktoken gives the same ids.
Writes ranks.tiktoken, and tiktoken.json: how tiktoken encodes texts with these ranks and two patterns.

python3 tests/golden/bpe/bpe.py
"""

import base64
import json
import pathlib
import random

import regex
import tiktoken
from tiktoken._educational import bpe_train
from tokenizers import ByteLevelBPETokenizer

HERE = pathlib.Path(__file__).parent
GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)
LEARNED = """It's the compiler's turn: we'll see what they've done, and what they'd do in 2024 or 1999.
The passes append the backward pass, the optimizer and the kernels; then the executor runs each step.
Größe, naïve, été, Москва, 東京, ελληνικά.   Spaces   and\ttabs\n\n\nand lines.
"""


def texts():
    yield LEARNED
    yield ""
    yield " "
    yield "a  b   c\n \n  d \t\t e"
    yield "x" * 300 + "  "
    yield "don't DON'T 'sit we're'llama I'd''s ' 's"
    yield "a1b2²½Ⅷ٣三 3.14 +1-2=…—«» e\u0301 🙂🙂 \u00a0\u2003x\u3000y\u0085z"
    yield "\x00\x01\x7f<|endoftext|>\r\n"
    alphabet = [*"aei st'\n\t .,0 9", "  ", "ß", "ж", "語", "²", "🙂", "\u0301", "\u00a0", "'ll", " the", "\u2028", "𝔘", "𐄇"]
    for seed in range(40):
        draw = random.Random(seed)
        yield "".join(draw.choice(alphabet) for _ in range(60))


def tiktoken_texts():
    yield from texts()
    yield "DON'T we'LL I'Ve 'Re 'D 'M 'x I'\u017f I'\u017ft"
    yield "1 12 123 1234 1234567 a1234 ٣٣٣٣ ½½½½"
    yield "end.\n\nnext;\r\n\r\n!!\n ?\n\n\n"
    yield "#word -word\tword\u00a0word (word) \"word\" \nword\rword"
    yield "  \n \n  word \n\n   "
    yield "word  \r\n"
    yield "\n\n  "
    yield "whole"


def ranks_of_all_pairs():
    """Ranks learned from all texts as one word: they merge across the ends of pre-tokens where a pattern allows."""
    ranks = bpe_train("".join(tiktoken_texts()), 700, r"(?s).+", visualise=None)
    whole = ["whole", "'D", "'LL", "'Ve", "'\u017f", "\n\n  ", "\n\n   ", "  \r\n", " \n \n", "ord\u00a0", "\u00a0word"]
    for i, pre_token in enumerate(whole):  # pre-tokens of a pattern; "whole" is no merge of two tokens
        ranks[pre_token.encode()] = 1000 + i
    return ranks


def ranges(category):
    matcher = regex.compile(category)
    wanted = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF and matcher.match(chr(c))]
    found = []
    for c in wanted:
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def table(name, found):
    lines, line = [f"constexpr CodePoints {name}[] = {{"], "   "
    for first, last in found:
        item = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line + item) > 100:
            lines.append(line)
            line = "   "
        line += item
    return "\n".join([*lines, line, "};"])


def main():
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([LEARNED] * 3, vocab_size=400, special_tokens=["<|endoftext|>"], min_frequency=2)
    tokenizer.save_model(str(HERE))
    # Without the special token, as tiktoken's encode_ordinary().
    tokenizer = ByteLevelBPETokenizer(str(HERE / "vocab.json"), str(HERE / "merges.txt"))
    vocabulary = tokenizer.get_vocab()
    bytes_of = {c: b for b, c in tiktoken_bytes().items()}
    ranks = {bytes(bytes_of[c] for c in t): i for t, i in vocabulary.items() if t != "<|endoftext|>"}
    other = tiktoken.Encoding("golden", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 0})
    golden = []
    for text in texts():
        ids = tokenizer.encode(text).ids
        assert ids == other.encode_ordinary(text), text
        golden.append({"text": text, "ids": ids})
    (HERE / "ids.json").write_text("[\n" + ",\n".join(json.dumps(g) for g in golden) + "\n]\n")
    ranks = ranks_of_all_pairs()
    lines = [f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()]
    (HERE / "ranks.tiktoken").write_text("".join(lines))
    encodings = {
        name: tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        for name, pattern in [("gpt2", GPT2), ("cl100k", CL100K)]
    }
    golden = [
        {"text": text} | {name: encoding.encode_ordinary(text) for name, encoding in encodings.items()}
        for text in tiktoken_texts()
    ]
    (HERE / "tiktoken.json").write_text("[\n" + ",\n".join(json.dumps(g) for g in golden) + "\n]\n")
    source = HERE / "../../../frontend/tokenizers/unicode_ranges.inc"
    source.write_text(
        "// Written by tests/golden/bpe/bpe.py: the code points of the Unicode categories L and N.\n"
        + table("kLetters", ranges(r"\p{L}")) + "\n" + table("kNumbers", ranges(r"\p{N}")) + "\n"
    )


def tiktoken_bytes():
    """GPT-2's characters for the bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in shown]
    return {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(rest)}


main()
