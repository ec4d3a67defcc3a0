"""What every part of quadpy may use: scalar types, targets, errors' texts, records and the like; it uses nothing of theirs."""
