// Package diff compares two JSON documents: Changes by their members, Unified by the lines
// that Lines writes them in, Same as a whole. Neither the order of members nor white space
// counts, and numbers keep their digits.
//
// It knows nothing of stores or terminals.
package diff
