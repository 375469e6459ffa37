package redis

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/working"
)

// Home keeps working memory in Redis or Valkey. It is safe for concurrent use.
type Home struct {
	client  goredis.UniversalClient
	prefix  string
	scripts *scripts
	stand   *standIn // nil without Options.Fallback
	once    sync.Once
	close   error
}

// Open returns a Home, and checks the connection to Redis. If Redis cannot be reached, Open begins a fallback if
// Options.Fallback is set, and otherwise returns an error. It returns an error for a wrong password in any case.
func Open(ctx context.Context, o Options) (*Home, error) {
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	s, err := loadScripts()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	h := &Home{client: client, prefix: o.prefix(), scripts: s}
	if o.Fallback {
		h.stand = newStandIn(&o, h.ping)
	}
	if err := h.ping(ctx); err != nil {
		if h.stand == nil || !errors.Is(err, working.ErrUnavailable) {
			return nil, errors.Join(err, client.Close())
		}
		h.stand.begin(err)
	}
	return h, nil
}

// Name returns "redis".
func (h *Home) Name() string { return "redis" }

// Check returns nil if Redis can be reached. It asks Redis even during a fallback.
func (h *Home) Check(ctx context.Context) error { return h.ping(ctx) }

func (h *Home) ping(ctx context.Context) error {
	return failure("ping", "", false, h.client.Ping(ctx).Err())
}

// Release does nothing, because the process has no data of a scope.
func (h *Home) Release(context.Context, working.Scope) error { return nil }

// UsingFallback reports whether the fallback is now in use.
func (h *Home) UsingFallback() bool { return h.stand != nil && h.stand.active() }

// Close closes the connections. If a fallback is in use, Close ends it and passes its data to OnEvent; Meanwhile
// returns the data too.
func (h *Home) Close() error {
	h.once.Do(func() {
		if h.stand != nil {
			h.stand.close()
		}
		h.close = h.client.Close()
	})
	return h.close
}

// key returns the name of a key of a scope in Redis. The part in braces, the hash tag, makes a cluster store all keys
// of the scope on one node.
func (h *Home) key(s working.Scope, rest string) string {
	return h.prefix + "{" + s.Key() + "}:" + rest
}

// Do performs one operation.
func (h *Home) Do(ctx context.Context, r *working.Request) (working.Result, error) {
	if err := ctx.Err(); err != nil {
		return working.Result{}, err
	}
	if h.stand != nil {
		if res, ok, err := h.stand.do(ctx, r); ok {
			return res, err
		}
	}
	res, err := h.do(ctx, r)
	if err == nil || h.stand == nil {
		return res, err
	}
	switch {
	case ctx.Err() != nil, crowded(err): // the failure is not an outage of Redis
	case errors.Is(err, working.ErrUnavailable):
		h.stand.begin(err)
		if res, ok, err := h.stand.do(ctx, r); ok {
			return res, err
		}
	case errors.Is(err, working.ErrOutcomeUnknown):
		// Redis became unreachable during this operation. Later operations use the fallback; this
		// one may have been executed, so it is not repeated.
		h.stand.begin(err)
	}
	return res, err
}

// once is a command that go-redis must not send a second time.
type once struct{ *goredis.Cmd }

// NoRetry tells go-redis not to send the command again.
func (once) NoRetry() bool { return true }

// run runs a script. It sends the text of the script only if the server does not have the script yet. If the connection
// breaks, run repeats an operation that only reads, once.
func (h *Home) run(ctx context.Context, s *script, r *working.Request, args ...any) (any, error) {
	key, writes := h.key(r.Scope, "m"), working.Writes(r.Op)
	send := func(what, text string) (any, error) {
		cmd := once{goredis.NewCmd(ctx, append([]any{what, text, 1, key}, args...)...)}
		_ = h.client.Process(ctx, cmd)
		return cmd.Result()
	}
	for again := false; ; again = true {
		v, err := send("evalsha", s.sha)
		if goredis.HasErrorPrefix(err, "NOSCRIPT") {
			v, err = send("eval", s.text)
		}
		err = failure(describe(r), h.prefix, writes, err)
		if err == nil || again || writes || ctx.Err() != nil || !errors.Is(err, working.ErrUnavailable) {
			return v, err
		}
	}
}

// describe returns a description of an operation for messages, for example "increment of session:s".
func describe(r *working.Request) string {
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", r.Op), "working.Op")) + " of " + r.Scope.Key()
}

// Scopes lists the scopes, in a cluster those of all nodes. During a fallback it lists only the scopes of the
// fallback. For a key that has the form of a scope's key but is not one, it yields an error.
func (h *Home) Scopes(ctx context.Context) iter.Seq2[working.Scope, error] {
	return func(yield func(working.Scope, error) bool) {
		if h.stand != nil && h.stand.active() {
			for s, err := range h.stand.local.Load().Scopes(ctx) {
				if !yield(s, err) {
					return
				}
			}
			return
		}
		keys, err := h.scan(ctx, escapeGlob(h.prefix)+"{*}:m")
		if err != nil {
			yield(working.Scope{}, err)
			return
		}
		for key := range keys {
			if err := ctx.Err(); err != nil {
				yield(working.Scope{}, err)
				return
			}
			name := strings.TrimSuffix(strings.TrimPrefix(key, h.prefix+"{"), "}:m")
			s, err := working.ParseScope(name)
			if err != nil {
				err = &errs.CorruptionError{Path: key, Offset: -1, Err: err}
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// scan returns all keys that match a pattern. It collects all of them before it returns, because the caller may write
// later, and because the Redis command SCAN may return a key twice.
func (h *Home) scan(ctx context.Context, pattern string) (map[string]bool, error) {
	keys := map[string]bool{}
	var mu sync.Mutex
	node := func(ctx context.Context, c goredis.Cmdable) error {
		for cursor := uint64(0); ; {
			page, next, err := c.Scan(ctx, cursor, pattern, 1000).Result()
			if err != nil {
				return err
			}
			mu.Lock()
			for _, key := range page {
				keys[key] = true
			}
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	var err error
	if c, ok := h.client.(*goredis.ClusterClient); ok {
		err = c.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error { return node(ctx, c) })
	} else {
		err = node(ctx, h.client)
	}
	return keys, failure("scan", h.prefix, false, err)
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
