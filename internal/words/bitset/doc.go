// Package bitset is sets of rows, one bit for each.
package bitset
