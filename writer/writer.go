package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MostName is the maximum number of bytes of a name, including Mark if the name was shortened.
const MostName = 256

// Mark is the text at the end of a name that was shortened.
const Mark = "…"

// MostUndo is the maximum number of bytes of Writer.Undo.
const MostUndo = 1024

// mostLine is the maximum number of bytes that Parse accepts. It suffices for seven names, each byte of which JSON may
// escape with six bytes, and an undo.
const mostLine = 16 << 10

// Writer describes a process that changes a store, and the agent or client for which the process writes. A zero field
// means that the value is unknown.
type Writer struct {
	Number uint32 `json:"number"` // the number that the store has assigned to the writer
	Since  uint64 `json:"-"`      // position of the entry of the log that assigns the number

	// name of the program, with its command, such as "memctl put"
	Program       string    `json:"program,omitempty"`
	Host          string    `json:"host,omitempty"`           // name of the machine
	PID           int       `json:"pid,omitempty"`            // id of the process on that machine
	Started       time.Time `json:"started,omitzero"`         // when the process opened the store
	Agent         string    `json:"agent,omitempty"`          // the agent for which the process writes
	Session       string    `json:"session,omitempty"`        // session of the agent
	Client        string    `json:"client,omitempty"`         // name that an MCP client gave itself
	ClientVersion string    `json:"client_version,omitempty"` // version that the MCP client gave with its name
	Token         string    `json:"token,omitempty"`          // name of the token with which a client identified itself
	// Undo identifies an undo of several commits: a JSON object. Such an undo is a writer with a number of its own. ""
	// for all other writers.
	Undo string `json:"undo,omitempty"`
}

var errWriter = errors.New("the value does not describe a writer")

func (w *Writer) names() [7]*string {
	return [7]*string{&w.Program, &w.Host, &w.Agent, &w.Session, &w.Client, &w.ClientVersion, &w.Token}
}

// Fit changes the fields so that they follow the rules of the package comment. It shortens and escapes names as
// FitName does, and clears other values that are invalid.
func (w *Writer) Fit() {
	for _, s := range w.names() {
		*s = FitName(*s)
	}
	w.Started = w.Started.UTC().Truncate(time.Microsecond)
	if y := w.Started.Year(); y < 1 || y > 9999 {
		w.Started = time.Time{}
	}
	w.PID = max(w.PID, 0)
	if len(w.Undo) > MostUndo || !utf8.ValidString(w.Undo) || strings.ContainsFunc(w.Undo, special) {
		w.Undo = "" // cut, it would identify another undo
	}
}

// TooLong returns the first name that has more than MostName bytes: the name of its field, and its value. It returns ""
// if no name is too long.
func (w *Writer) TooLong() (name, value string) {
	for i, s := range w.names() {
		if len(*s) > MostName {
			return [...]string{"program", "host", "agent", "session", "client", "client_version", "token"}[i], *s
		}
	}
	return "", ""
}

// Described returns the writer without Number and Since. Use it to find out whether two descriptions are equal.
func (w Writer) Described() Writer {
	w.Number, w.Since = 0, 0
	return w
}

// FitName returns a name as the store keeps it: special characters are escaped, and a name of more than MostName bytes
// is shortened.
func FitName(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	end := 0 // up to which the name leaves room for Mark
	for _, r := range s {
		switch {
		case special(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r) // U+FFFD in the place of a byte that is no UTF-8
		}
		if b.Len() <= MostName-len(Mark) {
			end = b.Len()
		}
		if b.Len() > MostName {
			return b.String()[:end] + Mark
		}
	}
	return b.String()
}

// plain reports whether FitName returns the name s unchanged.
func plain(s string) bool {
	return len(s) <= MostName && utf8.ValidString(s) && !strings.ContainsFunc(s, special)
}

// special reports whether a character is a control character, is invisible, or changes the direction of text.
func special(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// Line returns the JSON object that describes the writer in the log.
func (w *Writer) Line() ([]byte, error) { return json.Marshal(w) }

// Parse parses the JSON object that describes a writer, and then calls Fit. So even the names in a forged object are
// not longer than those that Line writes.
func Parse(line []byte) (Writer, error) {
	var w Writer
	if len(line) > mostLine {
		return w, fmt.Errorf("%w: the description has %d bytes; the limit is %d bytes", errWriter, len(line), mostLine)
	}
	if err := json.Unmarshal(line, &w); err != nil {
		return Writer{}, fmt.Errorf("%w: %w", errWriter, err)
	}
	if w.Number == 0 {
		return Writer{}, fmt.Errorf("%w: the member number is missing", errWriter)
	}
	w.Fit()
	return w, nil
}

// Name returns the most informative name of the writer that is known: that of the agent, the client, the token or the
// program, in this order. If none is known, it returns "writer" with the number of the writer.
func (w Writer) Name() string {
	for _, s := range []string{w.Agent, w.Client, w.Token, w.Program} {
		if s != "" {
			return s
		}
	}
	return fmt.Sprintf("writer %d", w.Number)
}

// Is reports whether name is the program, the first word of the program, the agent, the session, the client or the
// token of the writer. The caller must pass name through FitName first.
func (w Writer) Is(name string) bool {
	program, _, _ := strings.Cut(w.Program, " ")
	for _, s := range []string{w.Program, program, w.Agent, w.Session, w.Client, w.Token} {
		if s != "" && s == name {
			return true
		}
	}
	return false
}

// String returns a description of the writer in one line.
func (w Writer) String() string {
	var parts []string
	add := func(format string, s string) {
		if s != "" {
			parts = append(parts, fmt.Sprintf(format, s))
		}
	}
	name := w.Name()
	if w.Client != "" && w.ClientVersion != "" && name == w.Client {
		name += " " + w.ClientVersion
	}
	if w.Session != "" {
		add("session %s", w.Session)
	}
	if w.Client != "" && w.Agent != "" {
		add("client %s", strings.TrimSpace(w.Client+" "+w.ClientVersion))
	}
	if w.Token != "" && w.Token != name {
		add("token %s", w.Token)
	}
	if w.Program != name {
		add("%s", w.Program)
	}
	if w.PID != 0 {
		add("process %s", fmt.Sprint(w.PID))
	}
	add("on %s", w.Host)
	if len(parts) == 0 {
		return name
	}
	return name + " (" + strings.Join(parts, ", ") + ")"
}
