package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
)

const resourceURI = "memory://knowledge-graph"

func (s *host) addResource(m *mcp.Server) {
	m.AddResource(&mcp.Resource{
		URI: resourceURI, Name: "knowledge-graph", Title: "Knowledge Graph",
		Description: "The full knowledge graph with all entities and relations", MIMEType: "application/json",
	}, func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		if !s.permitted(r.Extra, s.tool("read_graph")) {
			return nil, mcp.ResourceNotFoundError(resourceURI)
		}
		var f *found
		err := s.during(ctx, func(s *server) (err error) {
			f, err = s.readGraph(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
		a := &answer{text: f.write}
		content := &mcp.ResourceContents{URI: resourceURI, MIMEType: "application/json", Text: slotText}
		n := a.size()
		switch c := callOf(r.Extra); {
		case f.over || n > maxAnswer:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: tooMuchError("read_graph").Error()}
		case c != nil && n > smallAnswer:
			c.answer = a
		default:
			content.Text = string(written(a.text, true))
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{content}}, nil
	})
}

// updates notifies the subscribers of the resource when any process changes the graph. One goroutine watches the store
// while there is a subscriber.
type updates struct {
	server *mcp.Server

	mu    sync.Mutex
	of    map[*mcp.ServerSession]bool
	ended map[*mcp.ServerSession]bool // sessions for whose end a goroutine waits
	stop  context.CancelFunc          // stops watching the store; nil: there are no subscribers
}

// subscriptions makes the server accept subscriptions. It accepts any URI, as the reference server does, although only
// one resource ever changes.
func (s *host) subscriptions(o *mcp.ServerOptions) {
	s.updates.of, s.updates.ended = map[*mcp.ServerSession]bool{}, map[*mcp.ServerSession]bool{}
	o.SubscribeHandler = func(_ context.Context, r *mcp.SubscribeRequest) error {
		if r.Params.URI == resourceURI {
			s.subscribe(r.Session)
		}
		return nil
	}
	o.UnsubscribeHandler = func(_ context.Context, r *mcp.UnsubscribeRequest) error {
		if r.Params.URI == resourceURI {
			s.unsubscribe(r.Session)
		}
		return nil
	}
}

func (s *host) subscribe(session *mcp.ServerSession) {
	u := &s.updates
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of[session] = true
	if u.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		u.stop = stop
		// Changes from here on are reported: the client gets the answer afterwards.
		st := s.served.Current()
		go s.watch(ctx, st, st.Admin().Stats().Durable)
	}
	if u.ended[session] {
		return
	}
	u.ended[session] = true
	go func() {
		_ = session.Wait() // a broken connection is an end, too
		s.unsubscribe(session)
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.ended, session)
	}()
}

func (s *host) unsubscribe(session *mcp.ServerSession) {
	u := &s.updates
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.of, session)
	if len(u.of) == 0 && u.stop != nil {
		u.stop()
		u.stop = nil
	}
}

// watch notifies the subscribers of each change of the graph, until ctx ends. All changes that are made while a
// notification is sent cause one further notification.
func (s *host) watch(ctx context.Context, st *varve.Store, from uint64) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changed := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				if err := s.updates.server.ResourceUpdated(ctx,
					&mcp.ResourceUpdatedNotificationParams{URI: resourceURI}); err != nil {
					s.o.Logger.Warn("notifying a subscriber", "err", err)
				}
			}
		}
	}()
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for said := ""; ; {
		err := s.follow(ctx, st, from, tell)
		if errors.Is(err, varve.ErrReplaced) {
			err = s.served.Replaced(ctx, st, err)
		}
		now := s.served.Current()
		if ctx.Err() != nil || errors.Is(err, varve.ErrClosed) && now == st {
			return
		}
		if now != st {
			if errors.Is(err, varve.ErrReplaced) {
				s.o.Logger.Warn("the watched store was replaced; watching the store that is now at its path", "err",
					err)
			}
			st, err = now, varve.ErrTruncated
		}
		if !errors.Is(err, varve.ErrTruncated) {
			if text := fmt.Sprint(err); text != said { // once per reason
				said = text
				s.o.Logger.Warn("watching the store for changes failed, trying again", "err", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(retryWatch):
			}
		}
		from = st.Admin().Stats().Durable
		tell() // a change may have been missed
	}
}

const retryWatch = time.Second

// follow calls tell after each commit that changes the graph. It returns when the changes cannot be read, or when ctx
// ends.
func (s *host) follow(ctx context.Context, st *varve.Store, from uint64, tell func()) error {
	dirty := false
	for c, err := range st.Watch(ctx, from) {
		if err != nil && c.Next == 0 {
			return err
		}
		dirty = dirty || c.Kind == "memory" && graph.IsID(c.ID)
		if dirty && !c.More {
			dirty = false
			tell()
		}
	}
	return ctx.Err()
}
