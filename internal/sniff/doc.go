// Package sniff names the type of a file that was given as JSON or text and is neither: the error of a
// JSON parser at byte 0 does not help.
package sniff
