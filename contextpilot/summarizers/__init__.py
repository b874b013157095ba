"""Shorter texts for originals: by structure, without a model, and remembered."""

from contextpilot.summarizers.base import SourceText, Summarizer, SummaryRequest
from contextpilot.summarizers.cached import CachedSummarizer
from contextpilot.summarizers.chunked import ChunkedSummarizer
from contextpilot.summarizers.outline import outlined_pieces
from contextpilot.summarizers.split import Piece, split_structure
from contextpilot.summarizers.structure import StructureSummarizer

__all__ = [
    "CachedSummarizer",
    "ChunkedSummarizer",
    "Piece",
    "SourceText",
    "StructureSummarizer",
    "Summarizer",
    "SummaryRequest",
    "outlined_pieces",
    "split_structure",
]
