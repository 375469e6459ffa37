// Package bitset implements sets of rows with one bit per row.
package bitset
