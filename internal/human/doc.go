// Package human writes values as people read them in messages.
package human
