// Package logs tests the log under many writers and processes: kills, conflicts, closing, lagging readers.
package logs
