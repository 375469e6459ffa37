package filter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Cond is one condition on the metadata of a memory, such as source=desk.
type Cond struct {
	path   []string
	op     string
	values []string
}

// operators are the operators of conditions. If one operator is a prefix of another, the longer one comes first.
var operators = []string{"!=", "^=", ">=", "<=", "=", ">", "<"}

// Parse parses a condition. Errors are *errs.FieldError.
func Parse(s string) (*Cond, error) {
	bad := func(why string, remedy ...string) (*Cond, error) {
		if remedy == nil {
			remedy = []string{"write source=desk, priority>=3, path^=docs/, source or !source"}
		}
		return nil, &errs.FieldError{Field: "condition", Value: human.Quote(s),
			Err: fmt.Errorf("%w: %s: %s", errs.ErrInvalid, why, remedy[0])}
	}
	c, name, value := &Cond{}, strings.TrimSpace(s), ""
	not, negated := strings.CutPrefix(name, "!")
	// A quoted name is taken literally.
	if quoted, err := strconv.QuotedPrefix(strings.TrimSpace(not)); err == nil && quoted[0] == '"' {
		one, _ := strconv.Unquote(quoted)
		c.path, not = []string{one}, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(not), quoted))
		if name = not; negated && name != "" || name != "" && !strings.ContainsAny(name[:1], "!=<>^") {
			return bad("an operator must follow the name in quotes")
		}
	}
	if at := strings.IndexAny(name, "=<>^"); at >= 0 {
		if at > 0 && name[at] == '=' && name[at-1] == '!' {
			at--
		}
		for _, o := range operators {
			if strings.HasPrefix(name[at:], o) {
				name, c.op, value = name[:at], o, name[at+len(o):]
				if value != "" && strings.Contains("=<>", value[:1]) {
					c.op = "" // == and <> are not operators
				}
				break
			}
		}
		if c.op == "" {
			return bad("unknown operator")
		}
	} else if negated {
		name, c.op = not, "!"
	}
	if name = strings.TrimSpace(name); c.path == nil {
		if remedy := miswritten(name, c.op, value); remedy != "" {
			return bad("missing operator", remedy)
		}
		name = strings.TrimPrefix(name, "metadata.")
		c.path = strings.Split(name, ".")
	} else if name != "" {
		return bad("unknown operator")
	}
	if slices.Contains(c.path, "") || strings.Contains(name, "!") || strings.HasPrefix(name, `"`) {
		return bad("the condition does not name a member of the metadata")
	}
	if c.op == "" || c.op == "!" {
		return c, nil
	}
	if again := joined.FindString(value); again != "" && !strings.Contains(value, `"`) {
		return bad("a condition can have only one operator", "pass each condition separately, or quote the value")
	}
	if strings.TrimSpace(value) == "" && c.op != "=" && c.op != "!=" {
		return bad("no value follows "+c.op,
			"write source=desk; a name alone requires only that the member exists")
	}
	for more := true; more; {
		var one string
		value = strings.TrimSpace(value)
		if strings.HasPrefix(value, `"`) {
			quoted, err := strconv.QuotedPrefix(value)
			if err == nil {
				one, err = strconv.Unquote(quoted)
			}
			rest := strings.TrimSpace(strings.TrimPrefix(value, quoted))
			if err != nil || rest != "" && rest[0] != ',' {
				return bad("the closing quote is missing")
			}
			value, more = strings.CutPrefix(rest, ",")
		} else {
			one, value, more = strings.Cut(value, ",")
			one = strings.TrimSpace(one)
		}
		c.values = append(c.values, one)
	}
	if len(c.values) > 1 && c.op != "=" && c.op != "!=" {
		return bad("a list of values requires the operator = or !=")
	}
	return c, nil
}

// joined matches a text in which two conditions are joined by "and" or "or".
var joined = regexp.MustCompile(`(?i)\s(and|or|&&|\|\|)\s+[^\s=<>!^]+\s*[=<>!^]`)

// miswritten returns a remedy if an unquoted name is probably a mistake, as in source:desk, in source desk, or in n:=3,
// which is the syntax of metadata in memctl put. It returns "" for a plausible name.
func miswritten(name, op, value string) string {
	at := strings.IndexAny(name, ":~ \t")
	if at <= 0 || op != "" && op != "!" && at < len(name)-1 {
		return ""
	}
	value = strings.TrimSpace(cmp.Or(strings.Trim(name[at:], ":~ \t"), value))
	if word, rest, ok := strings.Cut(value, " "); ok && slices.Contains([]string{"is", "in", "equals", "contains", "like"},
		strings.ToLower(word)) {
		value = rest
	}
	if value == "" {
		return fmt.Sprintf("write %s; put a name with spaces or colons in quotes", name[:at])
	}
	switch op {
	case "":
		op = "="
	case "!":
		op = "!="
	}
	return fmt.Sprintf("write %s%s%s; put a name with spaces or colons in quotes", name[:at], op, value)
}

// Texts returns the member and the values of a condition that only texts can satisfy. If begins is false, the member,
// or an element of its list, must equal one of the values. If begins is true, it must begin with one of them. ok is
// false for all other conditions.
func (c *Cond) Texts() (name string, values []string, begins, ok bool) {
	begins = c.op == "^="
	if len(c.path) != 1 || !begins && c.op != "=" {
		return "", nil, false, false
	}
	for _, v := range c.values {
		if !begins && json.Valid([]byte(v)) { // a number, true, false or null can equal this value too
			return "", nil, false, false
		}
	}
	return c.path[0], c.values, begins, true
}

// Has returns the condition name="text": the member must be this text, or a list that contains it.
func Has(name, text string) *Cond {
	return &Cond{path: []string{name}, op: "=", values: []string{text}}
}

// Holds reports whether the metadata of a memory satisfies the condition.
func (c *Cond) Holds(metadata map[string]any) bool {
	v, ok := c.member(metadata)
	switch c.op {
	case "":
		return ok
	case "!":
		return !ok
	case "!=":
		return !ok || !c.any(v, "=")
	}
	return ok && c.any(v, c.op)
}

// member returns the value of the condition's member in the metadata. It returns false if the member does not exist.
func (c *Cond) member(metadata map[string]any) (any, bool) {
	v, ok := any(metadata), true
	for _, name := range c.path {
		m, is := v.(map[string]any)
		if v, ok = m[name]; !is || !ok {
			return nil, false
		}
	}
	return v, ok
}

// any reports whether a value satisfies the operator op with the condition's values. If the value is a list, any
// reports whether one of its elements does.
func (c *Cond) any(v any, op string) bool {
	if list, ok := v.([]any); ok {
		return slices.ContainsFunc(list, func(v any) bool { return c.one(v, op) })
	}
	if list, ok := v.([]string); ok {
		return slices.ContainsFunc(list, func(v string) bool { return c.one(v, op) })
	}
	return c.one(v, op)
}

func (c *Cond) one(v any, op string) bool {
	text, number, isNumber := scalar(v)
	if text == "" && v != "" { // a list or an object
		return false
	}
	for _, want := range c.values {
		if !isNumber && strings.Trim(op, "<>=") == "" && op != "=" && unordered(text, want) {
			continue
		}
		n := strings.Compare(text, want)
		if isNumber {
			wanted, err := strconv.ParseFloat(want, 64)
			if err != nil || !json.Valid([]byte(want)) {
				continue // a number and a text, or NaN, have no order
			}
			n = cmp.Compare(number, wanted)
			if a, ok := integer(text); ok {
				if b, ok := integer(want); ok {
					n = a.Cmp(b) // exact, with all digits
				}
			}
		}
		switch {
		case op == "=" && n == 0, op == ">" && n > 0, op == "<" && n < 0, op == ">=" && n >= 0, op == "<=" && n <= 0:
			return true
		case op == "^=":
			if _, is := v.(string); is && strings.HasPrefix(text, want) {
				return true
			}
		}
	}
	return false
}

// unordered reports whether a text cannot be ordered relative to want because want is a number: "high" is not above 3.
// A text that begins like a number is compared byte by byte: the date 2026-01-31 with 2026, for example.
func unordered(text, want string) bool {
	if _, err := strconv.ParseFloat(want, 64); err != nil || !json.Valid([]byte(want)) {
		return false
	}
	return text == "" || !strings.ContainsRune("0123456789+-.", rune(text[0]))
}

// integer parses an integer of no more than 64 characters. It returns false for any other text.
func integer(s string) (*big.Int, bool) {
	if len(s) > 64 {
		return nil, false
	}
	return new(big.Int).SetString(s, 10)
}

// scalar returns the text of a scalar value, or "" for a list or an object. isNumber reports whether the value is a
// number; if so, number is its value.
func scalar(v any) (text string, number float64, isNumber bool) {
	switch v := v.(type) {
	case string:
		return v, 0, false
	case nil:
		return "null", 0, false
	case bool:
		return strconv.FormatBool(v), 0, false
	case json.Number:
		n, err := v.Float64()
		return v.String(), n, err == nil
	}
	b, err := json.Marshal(v)
	if err != nil || len(b) == 0 || b[0] == '{' || b[0] == '[' || b[0] == '"' {
		return "", 0, false
	}
	n, err := strconv.ParseFloat(string(b), 64)
	return string(b), n, err == nil
}
