// Package embeddings tests an embedding service beside a store, and re-embedding under writes and kills.
package embeddings
