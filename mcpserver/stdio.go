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
// passed over; if it is a call it is answered with an error.
const MaxLine = 64 << 20

// Stdio is a transport over two streams, one JSON-RPC message a line. The SDK's own
// ends the session at a line that it cannot read, and at the end of the input
// abandons what it was asked before; here such a line is reported and passed over,
// and every call that came in is answered, as if behind those that came before it.
// The logger may be nil.
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
	c := &connection{out: t.out, log: t.log, lines: make(chan input), closed: make(chan struct{}), free: make(chan struct{}, 1), waiting: map[jsonrpc.ID]bool{}, unheard: map[jsonrpc.ID]bool{}}
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
	free   chan struct{} // a call that waits for others may run
	end    error         // of the input; Read alone uses it

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	idle    *sync.Cond
	waiting map[jsonrpc.ID]bool // calls without an answer
	unheard map[jsonrpc.ID]bool // calls that were given up while they ran: no answer is wanted
	order   order
	gone    bool // closed
}

type input struct {
	line []byte
	err  error
}

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
		if err != nil && !isLong(err) {
			return
		}
	}
}

// readLine is the next line; io.EOF comes alone. Of one that is too long nothing is kept,
// and a *long comes instead.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	var over *long
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case over != nil:
			over.read(part)
		case len(line)+len(part) > MaxLine:
			over = &long{}
			over.read(line)
			over.read(part)
			line = nil
		default:
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case over != nil && (err == nil || errors.Is(err, io.EOF)):
			return nil, over
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil // the last one has no end
		}
		return line, err
	}
}

func isLong(err error) bool { return errors.As(err, new(*long)) }

// Read gives the next message that may be acted upon. At the end of the input it waits
// until all that was asked is answered.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		ready, waits := c.ready()
		if ready != nil {
			return ready, nil
		}
		lines := c.lines
		if c.end != nil {
			if !waits {
				c.answered(ctx)
				return nil, c.end
			}
			lines = nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case <-c.free:
		case in := <-lines:
			switch {
			case isLong(in.err):
				c.refuse(ctx, in.err)
				continue
			case in.err != nil:
				c.end = in.err
				continue
			}
			m, err := jsonrpc.DecodeMessage(bytes.TrimSpace(in.line))
			if err != nil {
				c.log.Warn("a line was passed over, it is no message", "err", err, "begins", string(in.line[:min(len(in.line), 80)]))
				continue
			}
			if !c.asked(m) {
				return m, nil
			}
		}
	}
}

// refuse tells who sent a message that is too long: a client would wait for its answer.
func (c *connection) refuse(ctx context.Context, err error) {
	c.log.Warn("a message was passed over", "err", err)
	var l *long
	if !errors.As(err, &l) {
		return
	}
	if id, ok := l.call(); ok {
		r := &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: l.Error()}}
		if err := c.Write(ctx, r); err != nil {
			c.log.Warn("answering a message that was passed over", "err", err)
		}
	}
}

// ready is a call whose turn it is; waits says that there are some whose is not.
func (c *connection) ready() (r jsonrpc.Message, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if next := c.order.next(); next != nil {
		return next, true
	}
	return nil, c.order.waits()
}

// asked notes a call. One that listens for changes has no end of its own, and one
// that the client gives up needs no answer. ordered says that its turn comes by
// order.next.
func (c *connection) asked(m jsonrpc.Message) (ordered bool) {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.IsCall() && r.Method != "subscriptions/listen":
		c.waiting[r.ID] = true
		return c.order.add(r)
	case r.Method == "notifications/cancelled":
		var p struct {
			ID any `json:"requestId"`
		}
		if json.Unmarshal(r.Params, &p) == nil {
			if id, err := jsonrpc.MakeID(p.ID); err == nil {
				asked := c.waiting[id]
				delete(c.waiting, id)
				if waited := c.order.cancelled(id); asked && !waited { // Read looks again behind this message
					c.unheard[id] = true
				}
			}
		}
	}
	return false
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
	for len(c.waiting) > 0 && !c.gone && ctx.Err() == nil {
		c.idle.Wait()
	}
}

// Write writes a message whole, whoever else writes. An answer that cannot be written is
// over as well.
func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Response); ok {
		defer c.over(r.ID)
		if c.givenUp(r.ID) {
			return nil // clients take it for an answer to nothing
		}
	}
	b, err := encode(m)
	if err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = c.out.Write(append(b, '\n'))
	return err
}

func (c *connection) givenUp(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unheard[id]
}

// over notes that a call needs no answer any more.
func (c *connection) over(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
	delete(c.unheard, id)
	c.order.answered(id)
	c.idle.Broadcast()
	select {
	case c.free <- struct{}{}: // Read looks again for a call whose turn it is
	default:
	}
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
		c.gone = true
		c.idle.Broadcast()
	})
	return nil
}

func (c *connection) SessionID() string { return "" }
