"""Functions of dictionaries, or that make them.

Owns: `TABLES`, rows of the catalogue: name, parameters, kinds of inputs, what it does, a right body, a wrong one.
Invariant, and what the kinds of inputs are: see `catalogue`. Pure data.
Must not know: how tasks are made of it.
"""

TABLES = (
    ("dict_total", "d", "d", "returns the sum of the values of the dictionary", "return sum(d.values())",
     "return len(d)"),
    ("dict_keys", "d", "d", "returns a sorted list of the keys of the dictionary", "return sorted(d)",
     "return list(d.values())"),
    ("get_or_zero", "d, key", "ds", "returns d[key], or 0 if key is not in d", "return d.get(key, 0)",
     "return d.get(key)"),
    ("values_sorted", "d", "d", "returns a sorted list of the values of the dictionary", "return sorted(d.values())",
     "return sorted(d)"),
    ("has_key", "d, key", "dk", "returns True if key is a key of the dictionary d", "return key in d",
     "return key not in d"),
    ("with_key", "d, key, value", "dki", "returns a new dictionary like d in which key has the given value",
     "return {**d, key: value}", "return {**d, key: 0}"),
    ("without_key", "d, key", "dk", "returns a new dictionary like d without key",
     "return {k: v for k, v in d.items() if k != key}", "return {k: v for k, v in d.items() if k == key}"),
    ("largest_value", "d", "d", "returns the largest value of the dictionary", "return max(d.values())",
     "return max(d)"),
    ("key_of_largest", "d", "d", "returns the key of the largest value; the first one of several",
     "return max(d, key=d.get)", "return max(d)"),
    ("double_values", "d", "d", "returns a new dictionary in which every value is doubled",
     "return {k: 2 * v for k, v in d.items()}", "return {k: v for k, v in d.items()}"),
    ("keys_above", "d, n", "dn6", "returns a sorted list of the keys whose value is greater than n",
     "return sorted(k for k, v in d.items() if v > n)", "return sorted(k for k, v in d.items() if v < n)"),
    ("length_of_each", "words", "w", "returns a dictionary from every word to its length",
     "return {w: len(w) for w in words}", "return [len(w) for w in words]"),
    ("count_each", "words", "w", "returns a dictionary from every word to how often it occurs in the list",
     "return {w: words.count(w) for w in words}", "return {w: len(w) for w in words}"),
    ("from_pairs", "keys, values", "wl", "returns a dictionary from every key to the value at the same place",
     "return dict(zip(keys, values))", "return dict(enumerate(keys))"),
    ("value_or", "d, key, other", "dki", "returns d[key], or other if key is not in d", "return d.get(key, other)",
     "return d.get(key)"),
    ("mean_value", "d", "d", "returns the average of the values of the dictionary, a float",
     "return sum(d.values()) / len(d)", "return sum(d.values())"),
    ("pairs_sorted", "d", "d", "returns a sorted list of lists of a key and its value",
     "return sorted([k, v] for k, v in d.items())", "return sorted([v, k] for k, v in d.items())"),
    ("upper_keys", "d", "d", "returns a new dictionary with all keys in upper case",
     "return {k.upper(): v for k, v in d.items()}", "return {k.lower(): v for k, v in d.items()}"),
)  # fmt: skip
