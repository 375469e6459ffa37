package cli

import "io"

// Logs returns stderr as a writer for a logger, which any goroutine may use: its lines are written between the
// messages, not into them.
func (a *App) Logs() io.Writer { return logWriter{a} }

type logWriter struct{ a *App }

func (w logWriter) Write(p []byte) (int, error) {
	w.a.messages.Lock()
	defer w.a.messages.Unlock()
	return w.a.ErrOut.Write(p)
}
