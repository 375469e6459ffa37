package mcpserver

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Limits of a message besides its length (MaxLine). In memory a value takes up to 500 bytes
// regardless of its text, and an entity that a call creates about 4 KiB.
const (
	maxDepth  = 1000    // nesting of arrays and objects
	maxValues = 1 << 17 // counted by commas and opening brackets
	maxText   = 32 << 20
	maxRest   = 64 << 10 // bytes of a call without its arguments, and of any other message
)

// envelope is the outer level of a message: its method, its id and its parameters. id and params are JSON text that is
// not parsed yet. They are slices of the line, not copies.
type envelope struct {
	id     []byte // as the client wrote it; nil: the message has no id
	method string
	params []byte
	answer bool  // it is a response to a request of the server
	bad    error // error for a response that exceeds a limit
}

func (e *envelope) isCall() bool { return e.id != nil && !e.answer }

// refusal is the error response to a line that is not a valid message, or to a call that is not accepted.
type refusal struct {
	id   []byte // the id as JSON; nil: null
	code int64
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(id []byte, code int64, format string, args ...any) *refusal {
	return &refusal{slices.Clone(id), code, fmt.Sprintf(format, args...)}
}

// openLine parses a line into an envelope. The error is a *refusal.
func openLine(line []byte) (*envelope, error) {
	if err := within(line); err != nil {
		var l long
		l.read(line)
		if id, ok := l.answers(); ok {
			return &envelope{id: id, answer: true, bad: fmt.Errorf("the response is %w", err)}, nil
		}
		return nil, refuse(l.idOfCall(), jsonrpc.CodeInvalidRequest, "the message is %v; it was not processed", err)
	}
	members, err := membersOf(line)
	if errors.Is(err, errNoObject) {
		return nil, refuse(nil, jsonrpc.CodeInvalidRequest, "a message must be an object")
	}
	if err != nil {
		return nil, refuse(nil, jsonrpc.CodeParseError, "the line is not valid JSON: %v", err)
	}
	e := &envelope{id: members["id"], params: members["params"]}
	_, valid := idKey(e.id)
	id := e.id // for the error response, even if it is a fraction
	if !valid && !isNumber(id) {
		id = nil
	}
	method, isRequest := members["method"]
	if e.answer = !isRequest && (members["result"] != nil || members["error"] != nil); e.answer {
		return e, nil
	}
	switch {
	case unquoted(members["jsonrpc"]) != "2.0":
		return nil, refuse(id, jsonrpc.CodeInvalidRequest, `the member jsonrpc must be "2.0"`)
	case !isRequest:
		return nil, refuse(id, jsonrpc.CodeInvalidRequest, "the message has no method")
	case method[0] != '"':
		return nil, refuse(id, jsonrpc.CodeInvalidRequest, "the method must be a string")
	case len(e.id) > maxID:
		return nil, refuse(nil, jsonrpc.CodeInvalidRequest, "an id of %d bytes exceeds the limit of %d",
			len(e.id), maxID)
	case e.id != nil && !valid:
		return nil, refuse(id, jsonrpc.CodeInvalidRequest, "the id must be a string or an integer")
	}
	e.method = unquoted(method)
	return e, nil
}

var errNoObject = errors.New("not an object")

// membersOf parses an object completely, and returns the members as slices of the text. If a name occurs twice, the
// last value is used, as in JavaScript.
func membersOf(object []byte) (map[string][]byte, error) {
	d := decoder(object)
	if d.PeekKind() != '{' {
		if err := d.SkipValue(); err != nil {
			return nil, noEOF(err)
		}
		return nil, cmp.Or(atEnd(d), errNoObject)
	}
	members := map[string][]byte{}
	_, _ = d.ReadToken()
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, noEOF(err)
		}
		key := name.String()
		v, err := d.ReadValue()
		if err != nil {
			return nil, noEOF(err)
		}
		end := int(d.InputOffset())
		members[key] = object[end-len(v) : end : end]
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, noEOF(err)
	}
	return members, atEnd(d)
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// atEnd returns an error if d has not reached the end of its input.
func atEnd(d *jsontext.Decoder) error {
	switch _, err := d.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errors.New("unexpected data after the JSON value")
}

// unquoted returns the text of the JSON string quoted. It returns "" if quoted is not a JSON string.
func unquoted(quoted []byte) string {
	if len(quoted) == 0 || quoted[0] != '"' {
		return ""
	}
	s, _ := jsontext.AppendUnquote(nil, quoted) // an error only means that invalid characters were replaced
	return string(s)
}

// within returns an error if a message is nested too deeply, has too many values, or has too much text.
func within(b []byte) error {
	depth, deepest, values, inText := 0, 0, 1, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := stringEnd(b[i+1:])
			inText += n
			i += n
		case '{', '[':
			values++
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case ',':
			values++
		}
	}
	switch {
	case deepest > maxDepth:
		return fmt.Errorf("nested deeper than %d levels", maxDepth)
	case values > maxValues:
		return fmt.Errorf("larger than %d values: send it in parts", maxValues)
	case inText > maxText && textIn(b) > maxText:
		return fmt.Errorf("larger than %d bytes of text: send it in parts", maxText)
	}
	return nil
}

// stringEnd returns the offset in b after the closing quote of the string whose opening quote is just before b.
func stringEnd(b []byte) int {
	for i := 0; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n + 1
		back := 0
		for back < i-1 && b[i-2-back] == '\\' {
			back++
		}
		if back%2 == 0 {
			return i
		}
	}
}

// textIn returns an upper bound of the length in bytes that the JSON string b has when it is decoded. The bound is
// close to that length.
func textIn(b []byte) int {
	n := len(b)
	for i := 0; i < len(b)-1; i++ {
		if b[i] != '\\' {
			continue
		}
		if i++; b[i] == 'u' { // six bytes that stand for at most three
			n -= 3
		} else {
			n--
		}
	}
	return n
}

// idOfCall returns the id of the call that the message makes, or nil if the message is not a call with a valid id.
func (l *long) idOfCall() []byte {
	if _, ok := l.call(); ok {
		return l.raw()
	}
	return nil
}

// maxID is the maximum length of an id in bytes. It is limited because three copies of the id are kept until the call
// is answered.
const maxID = 1 << 20

// maxNumber is the maximum length of an id that is a number.
const maxNumber = 1024

func isNumber(b []byte) bool { return len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9') }

// idKey returns a key that is the same for two ids if and only if they are equal JSON values. So 1, 1.0 and 10e-1 have
// the same key, and "a" and "\u0061" have the same key, but 1 and "1" have different ones. ok is false if id is not a
// valid id, which in MCP is a string or an integer.
func idKey(id []byte) (key string, ok bool) {
	switch {
	case len(id) == 0 || !utf8.Valid(id):
		return "", false
	case id[0] == '"':
		s, err := jsontext.AppendUnquote([]byte{'s'}, id)
		if err != nil { // half a surrogate pair: two different ones must not become equal
			return "h" + string(id), jsontext.Value(id).IsValid(jsontext.AllowInvalidUTF8(true))
		}
		return string(s), true
	case !isNumber(id), len(id) > maxNumber, !jsontext.Value(id).IsValid():
		return "", false
	}
	number, sign := string(id), "n"
	if number[0] == '-' {
		number, sign = number[1:], "n-"
	}
	mantissa, power := number, new(big.Int)
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa = number[:i]
		power.SetString(number[i+1:], 10)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	power.Add(power, big.NewInt(int64(len(whole)-len(digits)))) // power of ten by which the digits are multiplied
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "n0", true
	}
	return sign + digits + "e" + power.String(), power.Sign() >= 0
}

// batch returns the error responses to a batch, which is an array of calls. Only version 2025-03-26 of the
// protocol has batches, and clients assign responses to calls by their ids: so each call in the batch gets its
// own response. An array without calls gets one response without an id.
func batch(line []byte) []*refusal {
	if err := within(line); err != nil {
		return []*refusal{refuse(nil, jsonrpc.CodeInvalidRequest, "the message is %v; it was not processed", err)}
	}
	const why = "a message must be an object: batches are not supported and were not processed; send each call on a " +
		"line of its own"
	var all []*refusal
	d := decoder(line)
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != ']' {
		var item []byte
		if item, err = d.ReadValue(); err != nil {
			break
		}
		members, _ := membersOf(item)
		if _, ok := idKey(members["id"]); ok && members["method"] != nil {
			all = append(all, refuse(members["id"], jsonrpc.CodeInvalidRequest, why))
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	if err = cmp.Or(err, atEnd(d)); err != nil {
		return []*refusal{refuse(nil, jsonrpc.CodeParseError, "the line is not valid JSON: %v", noEOF(err))}
	}
	if all == nil {
		all = []*refusal{refuse(nil, jsonrpc.CodeInvalidRequest, why)}
	}
	return all
}

// decoder returns a decoder that reads b without copying it.
func decoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
