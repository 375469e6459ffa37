// Package wrap breaks text between words to a width in columns: Text a paragraph, Help the help of a
// command.
package wrap
