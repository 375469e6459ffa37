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

// What one message may hold besides its length (MaxLine). Read into memory, a value takes up
// to 500 bytes whatever its text is, and an entity that a call creates some 4 KiB.
const (
	maxDepth  = 1000    // arrays and objects within each other
	maxValues = 1 << 17 // values, counted by their commas and opening brackets
	maxText   = 32 << 20
	maxRest   = 64 << 10 // of a call without its arguments, and of every other message
)

// envelope is a line that is a message, as far as it was read: what of it stays JSON lies in
// the line.
type envelope struct {
	id     []byte // as it came; nil: there is none
	method string
	params []byte
	answer bool  // to a request of the server's
	bad    error // of an answer: it is beyond a limit
}

func (e *envelope) isCall() bool { return e.id != nil && !e.answer }

// refusal is the answer to what is no message that can be acted upon.
type refusal struct {
	id   []byte // nil: null
	code int64
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(id []byte, code int64, format string, args ...any) *refusal {
	return &refusal{slices.Clone(id), code, fmt.Sprintf(format, args...)}
}

// openLine reads a line's envelope. Its error is a *refusal.
func openLine(line []byte) (*envelope, error) {
	if err := within(line); err != nil {
		var l long
		l.read(line)
		if id, ok := l.answers(); ok {
			return &envelope{id: id, answer: true, bad: fmt.Errorf("an answer %w", err)}, nil
		}
		return nil, refuse(l.idOfCall(), jsonrpc.CodeInvalidRequest, "a message %v; nothing of it was done", err)
	}
	members, err := membersOf(line)
	if errors.Is(err, errNoObject) {
		return nil, refuse(nil, jsonrpc.CodeInvalidRequest, "a message must be an object")
	}
	if err != nil {
		return nil, refuse(nil, jsonrpc.CodeParseError, "a line is not JSON: %v", err)
	}
	e := &envelope{id: members["id"], params: members["params"]}
	_, valid := idKey(e.id)
	id := e.id // of an error: also a fraction is one that its sender knows
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
		return nil, refuse(nil, jsonrpc.CodeInvalidRequest, "an id of %d bytes is longer than the %d that it may be",
			len(e.id), maxID)
	case e.id != nil && !valid:
		return nil, refuse(id, jsonrpc.CodeInvalidRequest, "the id must be a string or an integer")
	}
	e.method = unquoted(method)
	return e, nil
}

var errNoObject = errors.New("no object")

// membersOf is an object's members, slices of the text, which is read whole. Of a name
// that there is twice the last one counts, as in JavaScript.
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

// atEnd reports whether something follows.
func atEnd(d *jsontext.Decoder) error {
	switch _, err := d.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errors.New("something follows the JSON")
}

// unquoted is what a JSON string says, "" where it is none.
func unquoted(quoted []byte) string {
	if len(quoted) == 0 || quoted[0] != '"' {
		return ""
	}
	s, _ := jsontext.AppendUnquote(nil, quoted) // the error says only that something was replaced
	return string(s)
}

// within reports whether a text is within the limits of a message.
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
		return fmt.Errorf("of more than %d values: send it in parts", maxValues)
	case inText > maxText && textIn(b) > maxText:
		return fmt.Errorf("with more than %d bytes of text: send it in parts", maxText)
	}
	return nil
}

// stringEnd is where a string ends whose opening quote was before b: behind its closing one.
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

// textIn is how long the strings of a text are without their escapes, or a little more.
func textIn(b []byte) int {
	n := len(b)
	for i := 0; i < len(b)-1; i++ {
		if b[i] != '\\' {
			continue
		}
		if i++; b[i] == 'u' { // six bytes for three at most
			n -= 3
		} else {
			n--
		}
	}
	return n
}

// idOfCall is the id of a call that is not read, nil where there is none.
func (l *long) idOfCall() []byte {
	if _, ok := l.call(); ok {
		return l.raw()
	}
	return nil
}

// maxID is how long an id may be, in bytes: it is kept three times over until it is answered.
const maxID = 1 << 20

// maxNumber is how long an id may be that is a number.
const maxNumber = 1024

func isNumber(b []byte) bool { return len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9') }

// idKey is the same for two ids if and only if JSON takes them for equal: 1, 1.0 and 10e-1,
// "a" and "\u0061"; but not 1 and "1". It is false for what is no id: MCP has strings and
// integers.
func idKey(id []byte) (key string, ok bool) {
	switch {
	case len(id) == 0 || !utf8.Valid(id):
		return "", false
	case id[0] == '"':
		s, err := jsontext.AppendUnquote([]byte{'s'}, id)
		if err != nil { // half a surrogate pair: no two of these may become equal
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
	power.Add(power, big.NewInt(int64(len(whole)-len(digits)))) // of ten, by which the digits are multiplied
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "n0", true
	}
	return sign + digits + "e" + power.String(), power.Sign() >= 0
}

// batch refuses all that an array holds: of the versions of the protocol only 2025-03-26 has
// batches, and clients tell answers apart by their ids. Each call is answered by itself, an
// array without any by one answer without an id.
func batch(line []byte) []*refusal {
	if err := within(line); err != nil {
		return []*refusal{refuse(nil, jsonrpc.CodeInvalidRequest, "a message %v; nothing of it was done", err)}
	}
	const why = "a message must be an object: batches are not supported, nothing of it was done; send each call on a " +
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
		return []*refusal{refuse(nil, jsonrpc.CodeParseError, "a line is not JSON: %v", noEOF(err))}
	}
	if all == nil {
		all = []*refusal{refuse(nil, jsonrpc.CodeInvalidRequest, why)}
	}
	return all
}

// decoder reads JSON where it is.
func decoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
