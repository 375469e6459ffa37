package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve/internal/human"
)

// MaxLine is the maximum length in bytes of a message from a client. A longer message is not processed. If the message
// is a call, it is answered with an error.
const MaxLine = 64 << 20

// Patience is the time for which a connection stays open after its input has ended, while the client reads none of the
// remaining answers.
const Patience = 5 * time.Second

// Stdio returns a transport over two streams, with one JSON-RPC message per line. The transport of the SDK ends
// the session at a line that it cannot read, and abandons unanswered calls at the end of the input. Stdio answers
// such a line with an error, and answers every call that it has received. The calls have the same effect as calls
// that run in the order of arrival. The logger may be nil.
//
// The number of messages in flight is bounded: while the client reads no answers, the transport reads no calls.
// The transport notices the end of the input even while it does not read the input. After that, the connection
// ends when all calls are answered, or when the client reads no answer for Patience.
func Stdio(in io.Reader, out io.Writer, log *slog.Logger) *Transport {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &connection{
		in: in, log: log, lines: make(chan input), closed: make(chan struct{}), free: make(chan struct{}, 1),
		room:  make(chan struct{}, 1),
		calls: map[jsonrpc.ID]*call{}, ids: map[string]*call{},
	}
	c.out = outlet{to: out, turn: make(chan struct{}, 1), closed: c.closed}
	return &Transport{c}
}

// Transport is the transport that Stdio returns, for one session.
type Transport struct{ c *connection }

// Connect implements mcp.Transport; the SDK calls it once.
func (t *Transport) Connect(context.Context) (mcp.Connection, error) {
	go t.c.readLines()
	return t.c, nil
}

// Abandon ends the session at once. Calls under way are cancelled, and not answered.
func (t *Transport) Abandon() { _ = t.c.Close() }

// Ended returns a channel that is closed when the session accepts no more calls and no call will be answered
// any more, because all were answered or abandoned.
func (t *Transport) Ended() <-chan struct{} { return t.c.closed }

// Undone returns the number of calls that were abandoned after the end of the input, because the
// client did not read answers or they took too long. A client that reads later may miss the
// answers.
func (t *Transport) Undone() int { return int(t.c.undone.Load()) }

// connection is the connection of a session. A read of the input cannot be interrupted: the reading
// goroutine ends with the input, or with the process.
type connection struct {
	in     io.Reader
	log    *slog.Logger
	lines  chan input
	closed chan struct{}
	once   sync.Once
	free   chan struct{} // wakes the goroutine that waits in Read
	room   chan struct{} // wakes the goroutine that waits in waitForRoom
	out    outlet
	taken  atomic.Bool // the server supports bypassing the SDK; see aside
	undone atomic.Int64

	// The following fields are used only by Read.
	end     error     // error that ended the input; set once everything before it is processed
	eof     bool      // the input has ended
	ended   time.Time // time at which the input ended or the client was found gone
	notices int       // number of notifications passed to the SDK since the last probe
	tells   int       // number of faulty lines that were logged
	held    []input   // input lines to be processed once the probe is answered, in order of arrival

	mu       sync.Mutex
	numbers  float64              // the last number that was used as the id of a call for the SDK
	calls    map[jsonrpc.ID]*call // unanswered calls, by number
	ids      map[string]*call     // unanswered calls, by idKey, without cancelled ones
	order    order
	queued   int64 // number of bytes of small lines in flight; see maxQueued
	large    int64
	listens  int
	probe    probe
	replies  []*refusal
	replying bool
	hung     bool // the client is gone, even if unread input remains
}

// Read returns the next message for the SDK. At the end of the input it waits until all calls are
// answered.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	var look *time.Ticker
	defer func() {
		if look != nil {
			look.Stop()
		}
	}()
	for {
		if next := c.next(); next != nil {
			return next, nil
		}
		if c.notices >= manyNotices {
			return c.ask(nil), nil
		}
		if in, ok := c.heldBack(); ok {
			if m := c.take(in); m != nil {
				return m, nil
			}
			continue
		}
		lines := c.lines
		full, hung := c.full()
		switch {
		case c.end != nil && c.allAnswered():
			_ = c.Close() // notifications may wait for a client that does not read
			return nil, c.end
		case c.eof || full:
			lines = nil
		}
		var tick <-chan time.Time
		if lines == nil || hung {
			if look == nil {
				look = time.NewTicker(lookEvery)
			}
			tick = look.C
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case <-c.free:
		case <-tick:
			if c.givesUp() {
				c.log.Warn("the client is gone; its calls are abandoned", "after", Patience)
				c.answerUndone()
				_ = c.Close()
				return nil, io.EOF
			}
		case in := <-lines:
			if m := c.arrived(in); m != nil {
				return m, nil
			}
		}
	}
}

// next returns a call that may be passed to the SDK now, or nil if no call may be passed.
func (c *connection) next() jsonrpc.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	if next := c.order.next(); next != nil {
		return next
	}
	return nil
}

// full reports whether too many bytes are in flight, so that no further line may be processed now. hung reports
// whether the client is gone.
func (c *connection) full() (full, hung bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queued >= maxQueued, c.hung
}

// allAnswered reports whether the client waits for no answer: all calls are answered, except listening and cancelled
// ones, and all error responses are written.
func (c *connection) allAnswered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		if !k.listens && !k.givenUp {
			return false
		}
	}
	return len(c.replies) == 0 && !c.replying
}

// lookForEnd checks whether the client is gone. If so, it sets c.hung.
func (c *connection) lookForEnd() {
	if !hungUp(c.in) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hung = true
	signal(c.free)
}

// givesUp reports whether the connection must end, because the input ended at least Patience ago and nothing was
// written since.
func (c *connection) givesUp() bool {
	c.lookForEnd()
	c.mu.Lock()
	hung := c.hung
	c.mu.Unlock()
	if !c.eof && !hung {
		return false
	}
	now := time.Now()
	if c.ended.IsZero() {
		c.ended = now
	}
	return now.Sub(c.ended) > Patience && now.Sub(time.Unix(0, c.out.wrote.Load())) > Patience
}

// take processes a line of input. It returns the message that the SDK gets for the line, or nil if the SDK gets no
// message.
func (c *connection) take(in input) jsonrpc.Message {
	var l *long
	switch {
	case errors.As(in.err, &l):
		c.told("a message was refused", "err", in.err)
		if id, ok := l.answers(); ok {
			return noAnswer(id, l)
		}
		c.reply(l.refusal())
		return nil
	case in.err != nil:
		c.end = in.err
		return nil
	}
	line := bytes.TrimSpace(bytes.TrimPrefix(in.line, []byte("\ufeff")))
	if len(line) > 0 && line[0] == '[' {
		c.holdsLarge(-in.large)
		c.told("a batch was refused", "bytes", len(line))
		c.reply(batch(line)...)
		return nil
	}
	e, err := openLine(line)
	var r *refusal
	switch {
	case errors.As(err, &r):
		c.told("a line was refused", "err", r.text, "begins", human.Head(string(line[:min(len(line), 100)]), 80))
		c.holdsLarge(-in.large)
		c.reply(r)
		return nil
	case e.isCall():
		return c.accept(e, in)
	}
	defer c.holdsLarge(-in.large)
	switch {
	case e.answer && e.bad != nil:
		return noAnswer(e.id, e.bad)
	case e.answer && len(line) > maxLarge:
		return noAnswer(e.id, fmt.Errorf("a response of %d bytes exceeds the limit of %d", len(line), maxLarge))
	case !e.answer && len(line) > longer:
		c.told("ignored a notification that is too long", "bytes", len(line))
	case e.answer:
		m, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			c.told("ignored a response", "err", err)
			return nil
		}
		return m
	case e.method == "notifications/cancelled":
		return c.cancelled(e.params)
	default:
		c.notices++
		return &jsonrpc.Request{Method: e.method, Params: bytes.Clone(e.params)}
	}
	return nil
}

// noAnswer returns a response for the SDK in place of a response of the client that cannot be used. The returned
// response has the given id, which is the id of the server's request, and an error with the text of cause. If the
// id is not valid, noAnswer returns nil.
func noAnswer(id []byte, cause error) jsonrpc.Message {
	m, err := jsonrpc.DecodeMessage(append(begun(id), `,"result":{}}`...))
	if err != nil {
		return nil
	}
	return &jsonrpc.Response{ID: m.(*jsonrpc.Response).ID,
		Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: cause.Error()}}
}

// manyTells is the maximum number of messages that told logs. Without a limit, a client could fill a log that no one
// reads.
const manyTells = 100

// told logs a fault in a line of the input. After manyTells faults it logs nothing more.
func (c *connection) told(msg string, args ...any) {
	if c.tells++; c.tells < manyTells {
		c.log.Warn(msg, args...)
	} else if c.tells == manyTells {
		c.log.Warn("more invalid lines: they are answered, but no longer logged", "the last", msg)
	}
}

// cancelled handles the cancellation of a call: it returns the notification for the SDK if the call
// runs. A waiting call is removed and will not run.
func (c *connection) cancelled(params []byte) jsonrpc.Message {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	key, _ := idKey(p.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.ids[key]
	if k == nil {
		return nil
	}
	delete(c.ids, key)
	if c.order.cancelled(k.ID) {
		c.over(k)
		return nil
	}
	number, _ := json.Marshal(k.ID.Raw())
	return &jsonrpc.Request{Method: "notifications/cancelled",
		Params: json.RawMessage(`{"requestId":` + string(number) + `}`)}
}

// Close ends the session; the caller closes the streams.
func (c *connection) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *connection) SessionID() string { return "" }
