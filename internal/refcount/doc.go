// Package refcount counts references to resources that must be released when their last user is done:
// mappings, and sets of them.
package refcount
