package mcpserver

import "io"

// hungUp returns false: on Windows the end of a pipe is known only when it has been read.
func hungUp(io.Reader) bool { return false }
