// Package query parses search queries (Parse), and defines the fields of a document that words are in.
package query
