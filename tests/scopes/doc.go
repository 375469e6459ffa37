// Package scopes tests working memory in a store.
package scopes
