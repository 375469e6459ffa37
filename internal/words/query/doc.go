// Package query reads what people type to search for (Parse), and says in which fields of a document
// words stand.
package query
