package cli

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/varve-db/varve"
)

// MemoryLine returns a memory's document on one line.
func MemoryLine(m *varve.Memory) ([]byte, error) {
	doc, err := m.Encode(NoLimits())
	if err != nil {
		return nil, err
	}
	return oneLine(doc)
}

// AssemblyLine returns the JSON document of an assembly on one line.
func AssemblyLine(a *varve.Assembly) ([]byte, error) {
	doc, err := a.Encode(NoAssemblyLimits())
	if err != nil {
		return nil, err
	}
	return oneLine(doc)
}

func oneLine(doc []byte) ([]byte, error) {
	var b bytes.Buffer
	err := json.Compact(&b, doc)
	return b.Bytes(), err
}

func About(noun, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", noun, PrintableID(id), err)
}
