// Package purges tests purges: what is removed, where it is looked for, and what stays.
package purges
