package main

import "io"

// logs is stderr for a logger, which any goroutine may write to: between the messages, not
// into them.
func (a *app) logs() io.Writer { return logWriter{a} }

type logWriter struct{ a *app }

func (w logWriter) Write(p []byte) (int, error) {
	w.a.messages.Lock()
	defer w.a.messages.Unlock()
	return w.a.errOut.Write(p)
}
