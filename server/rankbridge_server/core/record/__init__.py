"""The record of a rank: its last operations, in memory that is read from outside and may outlive the rank."""
