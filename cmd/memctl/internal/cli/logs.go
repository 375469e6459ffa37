package cli

import "io"

// Logs returns a writer to stderr for a logger. Any goroutine may use it: lines of the logger never appear
// within a message of memctl.
func (a *App) Logs() io.Writer { return logWriter{a} }

type logWriter struct{ a *App }

func (w logWriter) Write(p []byte) (int, error) {
	w.a.messages.Lock()
	defer w.a.messages.Unlock()
	return w.a.ErrOut.Write(p)
}
