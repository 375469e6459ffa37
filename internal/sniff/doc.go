// Package sniff names what a file is that was given as JSON or text and is neither: the error of a
// JSON parser at byte 0 does not help.
package sniff
