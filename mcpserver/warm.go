package mcpserver

import (
	"context"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
)

// warm begins to read the graph when the first client sends its first message, which is rarely a query. A query that
// arrives during the reading waits until the graph is read. If the first client's session ends, the reading stops; a
// query of another session that is waiting then reads the graph itself.
func (s *host) warm(first mcp.Request) {
	session, ok := first.GetSession().(*mcp.ServerSession)
	graph := s.serverFor(s.served.Current()).view
	if !ok || graph.limit < 0 || !slices.Contains(s.o.Groups, Graph) || s.warmed.Swap(true) {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_ = session.Wait() // a broken connection is an end, too
		stop()
	}()
	go func() {
		defer stop()
		_, err := graph.refresh(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, varve.ErrClosed) && !errors.Is(err, varve.ErrReplaced) {
			s.o.Logger.Warn("reading the graph failed, the first query will try again", "err", err)
		}
	}()
}
