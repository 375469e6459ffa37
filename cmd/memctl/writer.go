package main

import (
	"fmt"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// writerOf is a writer in a document.
type writerOf struct {
	Number  uint32     `json:"number"`
	Program string     `json:"program,omitempty"`
	Host    string     `json:"host,omitempty"`
	PID     int        `json:"pid,omitempty"`
	Started *time.Time `json:"started,omitempty"`
	Agent   string     `json:"agent,omitempty"`
	Session string     `json:"session,omitempty"`
	Client  string     `json:"client,omitempty"`
	Version string     `json:"client_version,omitempty"`
	Token   string     `json:"token,omitempty"`
}

// writerItem returns a writer as documents have it, nil for an unknown one.
func writerItem(w *varve.Writer) *writerOf {
	if w.Number == 0 {
		return nil
	}
	return &writerOf{w.Number, w.Program, w.Host, w.PID, cli.OrNil(w.Started), w.Agent, w.Session, w.Client,
		w.ClientVersion, w.Token}
}

// writtenBy returns a writer as a list has it: number and name, and why the store wrote.
func writtenBy(w *varve.Writer, cause string) string {
	by := varve.UnknownWriter
	switch {
	case w.Number != 0 && w.Since == 0: // its explanation is lost
		by = fmt.Sprintf("%d", w.Number)
	case w.Number != 0:
		by = fmt.Sprintf("%d %s", w.Number, w.Name())
	}
	if cause != "" {
		by += " (" + cause + ")"
	}
	return by
}
