// Package assembly holds the type Assembly. It opens no file.
package assembly
