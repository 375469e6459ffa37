// Package diff compares two JSON documents: Changes by their members, Unified by the lines that
// Lines returns, Same as a whole. The order of members and white space do not matter, and numbers
// keep their digits.
//
// It does not depend on stores or terminals.
package diff
