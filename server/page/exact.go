package page

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// A browser changes text in a form: a textarea has no CR and no NUL, and an attribute of HTML has neither. What is
// saved untouched must not change, and a button must not name another document. So a textarea gets a fieldText, and the
// values of hidden fields and check boxes are escaped.

// fieldText is a text as a textarea holds it.
type fieldText struct {
	Text string // its line ends are LF, and it has no CR and no NUL
	CRLF bool   // all line ends of the text are CR LF
	// CR and NUL are the characters that stand for these in Text, which has them for nothing else; "": it has none.
	CR, NUL string
}

// Names of the fields of a form that say how its text is to be read.
const (
	fieldCRLF = "content.crlf"
	fieldCR   = "content.cr"
	fieldNUL  = "content.nul"
)

// fieldOf returns a text as a textarea holds it. read returns it unchanged.
func fieldOf(text string) (f fieldText) {
	if n := strings.Count(text, "\r\n"); n > 0 && n == strings.Count(text, "\n") && n == strings.Count(text, "\r") {
		f.CRLF, text = true, strings.ReplaceAll(text, "\r\n", "\n")
	}
	if strings.Contains(text, "\r") {
		f.CR = standIn(text, '\u240d')
		text = strings.ReplaceAll(text, "\r", f.CR)
	}
	if strings.Contains(text, "\x00") {
		f.NUL = standIn(text, '\u2400')
		text = strings.ReplaceAll(text, "\x00", f.NUL)
	}
	f.Text = text
	return f
}

// standIn returns a character that a text does not have: the symbol of the character that it stands for, or one of the
// private use area, which no text has all of within MostEdited.
func standIn(text string, symbol rune) string {
	for next := '\U000F0000'; strings.ContainsRune(text, symbol); next++ {
		symbol = next
	}
	return string(symbol)
}

// read returns the text that was entered into a field. A form that is sent has CR LF for each LF.
func (f fieldText) read(entered string) string {
	s := strings.ReplaceAll(entered, "\r\n", "\n")
	if f.CRLF {
		s = strings.ReplaceAll(s, "\n", "\r\n")
	}
	if f.CR != "" {
		s = strings.ReplaceAll(s, f.CR, "\r")
	}
	if f.NUL != "" {
		s = strings.ReplaceAll(s, f.NUL, "\x00")
	}
	return s
}

// content returns the text of the form that was sent.
func (r *request) content() (string, error) {
	f := fieldText{CRLF: r.get(fieldCRLF) != "", CR: r.get(fieldCR), NUL: r.get(fieldNUL)}
	for _, c := range []string{f.CR, f.NUL} {
		if n, size := utf8.DecodeRuneInString(c); c != "" && (size != len(c) || n == utf8.RuneError) {
			return "", &refusal{http.StatusBadRequest, "the form does not say how its text is to be read",
				"open it again"}
		}
	}
	return f.read(r.get("content")), nil
}

// escapedField ends the name of a field whose value is escaped by escaped.
const escapedField = ".escaped"

// escaped returns a value that no browser changes.
func escaped(value string) string { return url.PathEscape(value) }

// unescape adds the fields whose values were escaped to a form, under their own names.
func unescape(form url.Values) error {
	for name, values := range form {
		plain, ok := strings.CutSuffix(name, escapedField)
		if !ok {
			continue
		}
		for _, v := range values {
			value, err := url.PathUnescape(v)
			if err != nil {
				return err
			}
			form.Add(plain, value)
		}
	}
	return nil
}
