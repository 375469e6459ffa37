// Package human formats values for messages.
package human
