"""Finding archived originals by what they say."""

from contextpilot.retrieval.base import Retriever
from contextpilot.retrieval.bm25 import Bm25Retriever
from contextpilot.retrieval.terms import text_terms

__all__ = ["Bm25Retriever", "Retriever", "text_terms"]
