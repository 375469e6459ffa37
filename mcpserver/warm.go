package mcpserver

import (
	"context"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
)

// warm begins to read the graph at the first message of the first client, which is seldom
// a question. It ends with that client's session; a question that comes before it is done
// waits for it, or, of another session, does it itself.
func (s *server) warm(first mcp.Request) {
	session, ok := first.GetSession().(*mcp.ServerSession)
	_, graph := s.store()
	if !ok || graph.limit < 0 || !slices.Contains(s.o.Groups, Graph) || s.warmed.Swap(true) {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_ = session.Wait() // a connection that broke is an end, too
		stop()
	}()
	go func() {
		defer stop()
		_, err := graph.refresh(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, varve.ErrClosed) && !errors.Is(err, varve.ErrReplaced) {
			s.o.Logger.Warn("reading the graph; the first question tries it again", "err", err)
		}
	}()
}
