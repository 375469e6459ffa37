// Package human formats values for messages, and measures how similar a mistyped name is to another.
package human
