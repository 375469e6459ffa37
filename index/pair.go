package index

import (
	"strings"
	"time"
)

// SessionPrefix returns the prefix that all keys of a session have in the index section by_session.
func SessionPrefix(session string) string {
	if strings.IndexByte(session, 0) < 0 && strings.IndexByte(session, 1) < 0 {
		return session + "\x00"
	}
	b := make([]byte, 0, len(session)+8)
	for i := 0; i < len(session); i++ {
		if c := session[i]; c < 2 {
			b = append(b, 1, c+1)
		} else {
			b = append(b, c)
		}
	}
	return string(append(b, 0))
}

// SessionKey returns the key of a memory in the index section by_session.
func SessionKey(session, id string) string { return SessionPrefix(session) + id }

// SplitSessionKey is the inverse of SessionKey: it returns the arguments for which SessionKey returned key. ok is false
// if key is not a key that SessionKey can return.
func SplitSessionKey(key string) (session, id string, ok bool) {
	session, id, ok = strings.Cut(key, "\x00")
	if !ok || strings.IndexByte(session, 1) < 0 {
		return session, id, ok
	}
	b := make([]byte, 0, len(session))
	for i := 0; i < len(session); i++ {
		c := session[i]
		if c == 1 {
			if i++; i == len(session) || session[i] != 1 && session[i] != 2 {
				return "", "", false
			}
			c = session[i] - 1
		}
		b = append(b, c)
	}
	return string(b), id, true
}

// ExpiryKey returns the key of a memory in the index section by_expiry. ExpiryKey(t, "") sorts before the keys
// of all memories that expire at t or later.
func ExpiryKey(t time.Time, id string) string {
	b := make([]byte, 0, len(nanoForm)+1+len(id))
	b = t.UTC().AppendFormat(b, nanoForm)
	b = append(b, 0)
	return string(append(b, id...))
}

// SplitExpiryKey is the inverse of ExpiryKey: it returns the arguments for which ExpiryKey returned key. ok is
// false if key does not begin with a time and a NUL.
func SplitExpiryKey(key string) (t time.Time, id string, ok bool) {
	if len(key) < len(nanoForm)+1 || key[len(nanoForm)] != 0 {
		return t, "", false
	}
	t, err := time.Parse(nanoForm, key[:len(nanoForm)])
	return t, key[len(nanoForm)+1:], err == nil
}
