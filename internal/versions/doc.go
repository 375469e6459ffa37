// Package versions reads what log and archive still have of the documents of a store: which
// versions there were, and the bytes of one of them. What is damaged there is left out, for
// verifying tells of it.
package versions
