package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Write writes the message m completely, even while other goroutines write. If m is the answer to a call, the call is
// over afterwards, even if the answer could not be written.
func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		b, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return fmt.Errorf("writing a message: %w", err)
		}
		if b, ok = c.ownIDs(b); !ok {
			return nil
		}
		b = append(b, '\n')
		if r, ok := m.(*jsonrpc.Request); ok && !r.IsCall() {
			// The SDK limits the writing of a notification to some seconds; a slow client must get
			// it too.
			ctx = context.WithoutCancel(ctx)
		}
		return c.out.write(ctx, func(to io.Writer) error { _, err := to.Write(b); return err })
	}
	c.mu.Lock()
	k := c.calls[r.ID]
	if k == nil {
		c.mu.Unlock()
		return nil
	}
	probed := k.id == nil
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if probed {
			c.probe.sent, c.probe.over = false, true
		}
		c.over(k)
	}()
	if probed {
		return nil
	}
	if k.listens {
		r.Result, _ = c.ownIDs(r.Result)
	}
	return c.out.write(ctx, func(to io.Writer) error {
		if !c.begin(k) {
			return nil
		}
		return k.write(to, r)
	})
}

// begin is called before the answer to a call is written. It returns false if the call was cancelled; the answer must
// not be written then, because clients treat an answer to a cancelled call as an error. After begin the client may use
// the id again.
func (c *connection) begin(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.givenUp && !k.listens {
		return false
	}
	k.written = true
	if c.ids[k.key] == k {
		delete(c.ids, k.key)
	}
	return true
}

// write writes the answer to a call, with the client's id, to w. The result in r must be JSON on one line.
func (k *call) write(w io.Writer, r *jsonrpc.Response) error {
	if r.Error != nil {
		b, err := errorLine(k.id, r.Error)
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}
	head := append(begun(k.id), `,"result":`...)
	if k.answer == nil {
		_, err := w.Write(append(append(head, r.Result...), '}', '\n'))
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	if err := k.answer.fill(w, r.Result); err != nil {
		return err
	}
	_, err := w.Write([]byte("}\n"))
	return err
}

func begun(id []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	return append([]byte(`{"jsonrpc":"2.0","id":`), id...)
}

// errorLine returns the line of an error response to the call with this id, encoded as the SDK encodes it.
func errorLine(id []byte, err error) ([]byte, error) {
	wire, ok := err.(*jsonrpc.Error)
	if !ok {
		wire = &jsonrpc.Error{Message: err.Error()}
		if of := (*jsonrpc.Error)(nil); errors.As(err, &of) {
			wire.Code = of.Code
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(wire); err != nil {
		return nil, fmt.Errorf("writing an error: %w", err)
	}
	line := append(begun(id), `,"error":`...)
	return append(append(line, bytes.TrimSpace(b.Bytes())...), '}', '\n'), nil
}

// ownIDs replaces the number of a listening call, which the SDK uses, by the client's id for the call. message is a
// notification or a result of that call. ownIDs returns false if the call has ended: then the client might have
// another call with this number as its id.
func (c *connection) ownIDs(message []byte) ([]byte, bool) {
	before, after, ok := bytes.Cut(message, []byte(`"`+mcp.MetaKeySubscriptionID+`":`))
	if !ok {
		return message, true
	}
	n := 0
	for n < len(after) && after[n] >= '0' && after[n] <= '9' {
		n++
	}
	var number float64
	if json.Unmarshal(after[:n], &number) != nil {
		return message, true
	}
	id, _ := jsonrpc.MakeID(number)
	c.mu.Lock()
	k := c.calls[id]
	c.mu.Unlock()
	if k == nil {
		return nil, false
	}
	own := append(bytes.Clone(before), `"`+mcp.MetaKeySubscriptionID+`":`...)
	return append(append(own, k.id...), after[n:]...), true
}

// lastReplies is the maximum time that is spent on sending the error responses for abandoned calls.
const lastReplies = 500 * time.Millisecond

// answerUndone abandons the calls that are still running, and sends an error response for each of them, in case the
// client still reads.
func (c *connection) answerUndone() {
	c.mu.Lock()
	for _, k := range c.calls {
		if k.id != nil && !k.listens && !k.givenUp && !k.written {
			k.givenUp = true
			c.undone.Add(1)
			c.replyLocked(refuse(k.id, jsonrpc.CodeInternalError,
				"the input has ended, and the call took longer than %v; its changes are made completely or not at all",
				Patience))
		}
	}
	c.mu.Unlock()
	late := time.NewTimer(lastReplies)
	defer late.Stop()
	for !c.allAnswered() {
		select {
		case <-c.free:
		case <-late.C:
			return
		}
	}
}

// answerAll writes all error responses that are queued.
func (c *connection) answerAll() {
	for {
		c.mu.Lock()
		if len(c.replies) == 0 {
			c.replying = false
			c.mu.Unlock()
			signal(c.free)
			return
		}
		r := c.replies[0]
		c.replies[0] = nil
		c.replies = c.replies[1:]
		c.queued -= r.size()
		c.mu.Unlock()
		b, err := errorLine(r.id, &jsonrpc.Error{Code: r.code, Message: r.text})
		if err == nil {
			err = c.out.write(context.Background(), func(to io.Writer) error { _, err := to.Write(b); return err })
		}
		if err != nil && !errors.Is(err, errAbandoned) {
			c.log.Warn("writing an error response failed", "err", err)
		}
		signal(c.free)
	}
}

// size returns the approximate number of bytes that the refusal occupies in memory until it is written.
func (r *refusal) size() int64 { return int64(len(r.id)+len(r.text)) + 256 }
