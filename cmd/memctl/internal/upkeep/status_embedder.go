package upkeep

import (
	"context"
	"fmt"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/vector/embed"
)

// embedder describes the embedding service that environment variables configure. Status does not call the service: it
// shows the failures and successes of earlier commands.
type embedder struct {
	URL      string     `json:"url,omitempty"`
	Model    string     `json:"model,omitempty"`
	State    string     `json:"state"` // "unknown", "failing", "down", "probing" or "invalid"
	Failures int        `json:"failures"`
	Since    *time.Time `json:"since"`
	Next     *time.Time `json:"next"`
	Error    string     `json:"error,omitempty"`
}

func embedderOf(ctx context.Context, st *varve.Store, e *embed.Embedder, invalid error) *embedder {
	if invalid != nil {
		return &embedder{State: "invalid", Error: invalid.Error()}
	}
	if e == nil {
		return nil
	}
	h := st.Health(ctx).Embedder
	s := &embedder{URL: e.URL(), Model: e.Model(), State: string(h.State), Failures: h.Failures}
	if !h.Since.IsZero() {
		s.Since = &h.Since
	}
	if !h.Next.IsZero() {
		s.Next = &h.Next
	}
	if h.Err != nil {
		s.Error = h.Err.Error()
	}
	return s
}

func (e *embedder) String() string {
	s := fmt.Sprintf("%s at %s", cli.Printable(e.Model), cli.Printable(e.URL))
	switch varve.EmbedderState(e.State) {
	case "invalid":
		return "not used: " + cli.Printable(e.Error)
	case varve.EmbedderFailing:
		s += ": " + cli.Count(e.Failures, "failure", "failures in a row")
	case varve.EmbedderDown, varve.EmbedderProbing:
		s += ": down"
		if e.Since != nil {
			s += " since " + e.Since.Local().Format("2006-01-02 15:04:05")
		}
		if e.Next != nil {
			s += ", asked again after " + e.Next.Local().Format("15:04:05") + " or by memctl reindex --missing"
		}
	default:
		return s + ": no failure is known"
	}
	return s + ": " + cli.Printable(e.Error)
}

// Query returns an option that sets the embedder for queries only. The option does not set the store's model.
func Query(e *embed.Embedder) func(*varve.Options) {
	if e == nil {
		return nil
	}
	return func(o *varve.Options) { o.Embed, o.EmbedService = e.Embed, e.String() }
}
