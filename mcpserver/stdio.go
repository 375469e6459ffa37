package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxLine is how long one message from a client may be, in bytes. A longer one is
// passed over.
const MaxLine = 64 << 20

// Stdio is a transport over two streams, one JSON-RPC message a line. The SDK's own
// ends the session at a line that it cannot read, and at the end of the input
// abandons what it was asked before; here such a line is reported and passed over,
// and every call that came in is answered. The logger may be nil.
func Stdio(in io.Reader, out io.Writer, log *slog.Logger) mcp.Transport {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &stdio{in, out, log}
}

type stdio struct {
	in  io.Reader
	out io.Writer
	log *slog.Logger
}

func (t *stdio) Connect(context.Context) (mcp.Connection, error) {
	c := &connection{out: t.out, log: t.log, lines: make(chan input), closed: make(chan struct{}), waiting: map[jsonrpc.ID]bool{}}
	c.idle = sync.NewCond(&c.mu)
	go c.readLines(t.in)
	return c, nil
}

// connection is a session's. A read of the input cannot be interrupted: the
// goroutine that reads ends with the input, or with the process.
type connection struct {
	log    *slog.Logger
	lines  chan input
	closed chan struct{}
	once   sync.Once

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	idle    *sync.Cond
	waiting map[jsonrpc.ID]bool // calls without an answer
	over    bool                // closed
}

type input struct {
	line []byte
	err  error
}

var errLine = fmt.Errorf("a message of more than %d bytes", MaxLine)

func (c *connection) readLines(in io.Reader) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(r)
		if len(bytes.TrimSpace(line)) > 0 || err != nil {
			select {
			case c.lines <- input{line, err}:
			case <-c.closed:
				return
			}
		}
		if err != nil && !errors.Is(err, errLine) {
			return
		}
	}
}

// readLine is the next line; io.EOF comes alone. Of one that is too long the rest is
// skipped, and errLine comes instead.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	over := false
	for {
		part, err := r.ReadSlice('\n')
		if over = over || len(line)+len(part) > MaxLine; over {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case over && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLine
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil // the last one has no end
		}
		return line, err
	}
}

// Read gives the next message. At the end of the input it waits until all that was
// asked is answered.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case in := <-c.lines:
			switch {
			case errors.Is(in.err, errLine):
				c.log.Warn("a message was passed over", "err", in.err)
				continue
			case in.err != nil:
				c.answered(ctx)
				return nil, in.err
			}
			m, err := jsonrpc.DecodeMessage(bytes.TrimSpace(in.line))
			if err != nil {
				c.log.Warn("a line was passed over, it is no message", "err", err, "begins", string(in.line[:min(len(in.line), 80)]))
				continue
			}
			c.asked(m)
			return m, nil
		}
	}
}

// asked notes a call. One that listens for changes has no end of its own, and one
// that the client gives up needs no answer.
func (c *connection) asked(m jsonrpc.Message) {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.IsCall() && r.Method != "subscriptions/listen":
		c.waiting[r.ID] = true
	case r.Method == "notifications/cancelled":
		var p struct {
			ID any `json:"requestId"`
		}
		if json.Unmarshal(r.Params, &p) == nil {
			if id, err := jsonrpc.MakeID(p.ID); err == nil {
				delete(c.waiting, id)
			}
		}
	}
}

func (c *connection) answered(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.idle.Broadcast()
	})
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) > 0 && !c.over && ctx.Err() == nil {
		c.idle.Wait()
	}
}

// Write writes a message whole, whoever else writes.
func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	b, err := encode(m)
	if err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.writing.Lock()
	_, err = c.out.Write(append(b, '\n'))
	c.writing.Unlock()
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.waiting, r.ID)
		c.idle.Broadcast()
		c.mu.Unlock()
	}
	return err
}

// encode spares a result, which is JSON on one line already, another pass.
func encode(m jsonrpc.Message) ([]byte, error) {
	r, ok := m.(*jsonrpc.Response)
	if !ok || r.Error != nil || len(r.Result) == 0 {
		return jsonrpc.EncodeMessage(m)
	}
	id, err := json.Marshal(r.ID.Raw())
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(r.Result)+len(id)+len(`{"jsonrpc":"2.0","id":,"result":}`)+1)
	b = append(append(append(b, `{"jsonrpc":"2.0","id":`...), id...), `,"result":`...)
	return append(append(b, r.Result...), '}'), nil
}

// Close ends the session; the streams are the caller's.
func (c *connection) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.over = true
		c.idle.Broadcast()
	})
	return nil
}

func (c *connection) SessionID() string { return "" }
