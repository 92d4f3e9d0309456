// Shows the rows of the table that fit all filters.
addEventListener("DOMContentLoaded", () => {
  const filters = document.querySelector(".filters"), rows = [...document.querySelectorAll(".published tbody tr")];
  if (!filters) return;
  const count = filters.querySelector("output"), words = filters.querySelector("input"), choices = [...filters.querySelectorAll("select")];
  const show = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every(word => text.includes(word)) || choices.some(choice => choice.value && row.dataset[choice.name] !== choice.value);
      shown += !row.hidden;
    }
    count.value = `${shown} of ${rows.length} rows`;
  };
  filters.hidden = false;
  filters.addEventListener("input", show);
  show();
});
