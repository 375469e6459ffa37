// Package vectorfiles tests the vector files and their mapping against the documents.
package vectorfiles
