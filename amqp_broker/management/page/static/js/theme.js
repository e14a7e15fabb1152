// Sets the chosen theme, if it is not the system's, before the page is drawn.
const theme = localStorage.getItem("theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
